-- finish.lua: end an admitted request and settle what it used.
--
-- KEYS[i]  one budget each, of the forms of admit.lua, in any order
-- ARGV[1]  now_ms     as in clock.lua
-- ARGV[2]  member     request id
-- ARGV[3]  at_ms      when it was admitted: the first value of admit.lua's reply; 0 if that was lost
-- ARGV[4…] form, window_ms, cost, used, ttl_s of KEYS[1], of KEYS[2], …
--          cost       what was taken at admission
--          used       what stays taken: of a sum an amount, of a log 0 or all; a lease always ends
--
-- Reply: one integer: 1, or 0 if the request was not admitted or is finished already.
--
-- The unused amount goes back to the slice that it was taken from, if that still exists, and never more than
-- the slice holds. Usage above the cost is taken now, with any limit. The first lease, or if there is none
-- the first log, remembers requests that are not finished, so a repeat does nothing.
--
-- The TTL of a log goes back to that of the newest remaining entry (its score + window + 1 s), so that a
-- rejected request extends nothing. It is never lengthened.
--
-- O(log N) a log or lease, 61 records a sum. Redis 6.2 or newer.

local keys, argv, call = KEYS, ARGV, redis.call
local member, admitted_at = argv[2], argv[3] + 0

-- give_back_to returns the total and the records without an amount that was taken in the slice of stamp.
local function give_back_to(total, records, window, stamp, amount)
  for at = #records - 15, 1, -16 do
    local last, weight = unpack('<dd', records, at)
    if slice(last, window) == slice(stamp, window) then
      local given = math.min(weight, amount)
      return total - given,
        string.sub(records, 1, at - 1) .. pack('<dd', last, weight - given) .. string.sub(records, at + 16)
    end
  end
  return total, records
end

local function give_back(key, window, cost)
  if call('ZREM', key, member) == 0 then return end
  for n = 2, cost do call('ZREM', key, string.format('%s:%d', member, n)) end
  local newest = call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  if newest then
    local ttl = math.max(1, newest - now + window + 1000)
    local left = call('PTTL', key)
    if left < 0 or ttl < left then call('PEXPIRE', key, ttl) end
  end
end

local lease, log -- the first of each
for i = 1, #keys do
  local form = argv[5 * i - 1]
  if form == 'lease' then
    lease = lease or i
  elseif form == 'log' then
    log = log or i
  end
end
local known = call('ZSCORE', keys[lease or log], member)
if lease then
  if not known then return 0 end
  if admitted_at == 0 then admitted_at = known - argv[5 * lease] end
end

-- Leases end first: a slot is then free even if a sum cannot be read. And when memory is full, Redis lets the
-- script write sums, because it has freed memory before.
for i = 1, #keys do
  if argv[5 * i - 1] == 'lease' then call('ZREM', keys[i], member) end
end
for i = 1, #keys do
  local key, at = keys[i], 5 * i - 1
  local form, window, cost = argv[at], argv[at + 1], argv[at + 2] + 0
  local used, ttl = argv[at + 3] + 0, argv[at + 4]
  if form == 'log' then
    if used == 0 then give_back(key, window, cost) end
  elseif form == 'sum' and used ~= cost and known then
    local total, records = read(key, window)
    if used > cost then
      total, records = total + used - cost, add(records, window, used - cost)
    else
      total, records = give_back_to(total, records, window, admitted_at, cost - used)
    end
    if records ~= '' then write(key, total, records, ttl) end
  end
end
return known and 1 or 0
