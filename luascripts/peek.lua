-- peek.lua: return what a request would find now, and write nothing.
--
-- KEYS[i]  one budget each, of the forms of admit.lua
-- ARGV[1]  now_ms     as in clock.lua
-- ARGV[2…] form, window_ms, limit of KEYS[1], of KEYS[2], …
--
-- Reply: three integers a budget, in the order of KEYS, for every budget:
--   {1, used, 0} if a request that takes 1 would be admitted, {0, used, retry_after_ms} otherwise.
--   used is what the budget holds now; retry_after_ms is 1 to window_ms.
--
-- O(log N) a log or lease, with at most one entry read; 61 records a sum. Redis 6.2 or newer.

local reply = {}
for i, key in ipairs(KEYS) do
  local form, window, limit = ARGV[3 * i - 1], ARGV[3 * i] + 0, ARGV[3 * i + 1] + 0
  local used, retry_after = 0, nil
  if form == 'log' then
    local after = string.format('(%.0f', now - window)
    used = redis.call('ZCOUNT', key, after, '+inf')
    if used >= limit then
      local blocking =
        redis.call('ZRANGEBYSCORE', key, after, '+inf', 'WITHSCORES', 'LIMIT', used - limit, 1)[2]
      retry_after = math.floor(math.max(1, math.min(window, blocking and blocking + window - now or window)))
    end
  elseif form == 'sum' then
    local total, records = read(key, window)
    used = math.floor(total)
    if used >= limit then
      retry_after = limit < 1 and window + 0 or wait(records, window, used + 1 - limit)
    end
  elseif form == 'gate' then
    local closed = redis.call('PTTL', key)
    if closed > 0 then retry_after = closed end
  else
    used = redis.call('ZCOUNT', key, '(' .. now, '+inf')
    if used >= limit then retry_after = 1000 end
  end
  reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = retry_after and 0 or 1, used, retry_after or 0
end
return reply
