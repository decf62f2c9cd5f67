-- admit.lua: decide one request against budgets of all forms, all or none.
--
-- KEYS[i]  one budget each; the first one that is full rejects; on a Cluster all share a slot. Forms:
--          log    sorted set, an exact window of requests, as sliding_window.lua keeps it
--          sum    string, a bounded window, as sums.lua describes it
--          lease  sorted set, requests in progress: score = end of the lease in ms, member = request id
--          gate   string, exists while the gate is closed; nothing is ever taken from it
-- ARGV[1]  now_ms    as in clock.lua
-- ARGV[2]  member    request id, the same for a repeat of this request
-- ARGV[3…] form, window_ms, limit, cost, ttl_s of KEYS[1], of KEYS[2], …
--          window_ms of a lease is how long it lasts unless it is renewed
--          limit     of a lease: -1 means none; the lease is then written and not counted
--          cost      what the request takes: of a sum an amount, where 0 never rejects; of a log a number of
--                    entries (member, member:2, …); of a lease always 1
--
-- Reply: now_ms, and three integers a budget, in the order of KEYS.
--   admitted: {1, used, 0} for each; used includes this request.
--   rejected: the same for budgets with room, without this request, and then
--             {0, used, retry_after_ms} for the first full one, which ends the reply.
--             retry_after_ms is -1 if the cost is above the whole limit and can never pass.
--
-- All keys are read before anything is taken: a key of another type fails the whole call. A rejection only
-- trims logs and repairs what a clock that went back left behind (see sliding_window.lua, sums.lua).
--
-- A member that was admitted before is admitted again and counted once: the first lease remembers it, or, if
-- there is no lease, the first log. The reply then has the present counts.
--
-- O(log N + expired entries) a log or lease, 61 records a sum. Redis 6.2 or newer.

local member = argv[2]
local forget = 300000 -- ms after the end of its lease in which a request can still be finished

local memory, lease -- the key that remembers admitted members, and, if it has leases, how long they last
for i = 1, #keys do
  local form = argv[5 * i - 2]
  if form == 'lease' then
    memory, lease = keys[i], argv[5 * i - 1]
    break
  end
  if form == 'log' and not memory then memory = keys[i] end
end
local admitted = call('ZSCORE', memory, member)

local reply, totals, records = {time}, {}, {}
for i = 1, #keys do
  local key, at = keys[i], 5 * i - 2
  local form, window, limit = argv[at], argv[at + 1], argv[at + 2] + 0
  local cost, ttl = argv[at + 3] + 0, argv[at + 4]
  local used, retry_after, back = 0, nil, false
  if form == 'log' then
    if cost > limit and limit > 0 then
      used, retry_after = call('ZCOUNT', key, format('(%d', now - window), '+inf'), -1
    else
      used, retry_after = look(key, window, limit - cost + 1, member, ttl)
    end
  elseif form == 'sum' then
    totals[i], records[i], back = read(key, window)
    used = math.floor(totals[i])
    if cost > limit then
      retry_after = -1
    elseif cost > 0 and used + cost > limit then
      retry_after = wait(records[i], window, used + cost - limit)
    end
  elseif form == 'gate' then
    local closed = call('PTTL', key)
    if closed > 0 then retry_after = closed end
  else
    used = call('ZCOUNT', key, '(' .. now, '+inf')
    if limit >= 0 and used >= limit then retry_after = 1000 end
  end
  if admitted then retry_after = nil end
  reply[3 * i - 1], reply[3 * i], reply[3 * i + 1] = retry_after and 0 or 1, used, retry_after or 0
  if retry_after then
    -- Amounts and leases from the future become ones of now, so that the wait is true from now on.
    if back then write(key, totals[i], records[i], ttl) end
    if form == 'lease' then
      local ends = format('%d', time + window)
      for _, ahead in ipairs(call('ZRANGEBYSCORE', key, '(' .. ends, '+inf')) do
        call('ZADD', key, 'XX', ends, ahead)
      end
    end
    return reply
  end
end

if admitted then
  if lease then reply[1] = math.floor(admitted - lease) end
  return reply
end

-- Sums come before logs, so that a user without the right to SET writes nothing. When memory is full, Redis
-- lets a script write if it has freed memory before: look has trimmed every log, and leases are trimmed
-- first.
if lease then call('ZREMRANGEBYSCORE', memory, '0', format('%d', time - forget)) end
for i = 1, #keys do
  local key, at = keys[i], 5 * i - 2
  local window, cost = argv[at + 1], argv[at + 3] + 0
  if argv[at] == 'sum' and cost > 0 then
    write(key, totals[i] + cost, add(records[i], window, cost), argv[at + 4])
    reply[3 * i] = math.floor(reply[3 * i] + cost)
  end
end
for i = 1, #keys do
  local key, at = keys[i], 5 * i - 2
  local form, window = argv[at], argv[at + 1]
  if form == 'log' then
    if take(key, member, argv[at + 4]) == 1 then
      local cost = argv[at + 3] + 0
      for n = 2, cost do call('ZADD', key, now, format('%s:%d', member, n)) end
      reply[3 * i] = math.floor(reply[3 * i] + cost)
    end
  elseif form == 'lease' then
    if key ~= memory then call('ZREMRANGEBYSCORE', key, '0', format('%d', time - forget)) end
    call('ZADD', key, format('%d', time + window), member)
    call('PEXPIRE', key, format('%d', window + forget))
    reply[3 * i] = reply[3 * i] + 1
  end
end
return reply
