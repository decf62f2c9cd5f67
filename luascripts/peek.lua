-- peek.lua: what sliding_window.lua would find now, without a write.
--
-- KEYS[i]  sorted set, the log of one window, as sliding_window.lua keeps it
-- ARGV[1]  now_ms     as in clock.lua
-- ARGV[2…] window_ms (> 0), limit of KEYS[1], of KEYS[2], …
--
-- Reply: three integers a window, in the order of KEYS, for every window:
--   {1, count, 0} where a call would be admitted, {0, count, retry_after_ms} where not.
--   count is what the window holds now; retry_after_ms is 1 to window_ms.
--
-- O(log N) a window; at most one entry is read. Redis 6.2 or newer.

local reply = {}
for i, key in ipairs(KEYS) do
  local window, limit = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local after = string.format('(%.0f', now - window)
  local count = redis.call('ZCOUNT', key, after, '+inf')

  reply[3 * i - 2] = 1
  reply[3 * i - 1] = count
  reply[3 * i] = 0
  if count >= limit then
    local blocking = redis.call('ZRANGEBYSCORE', key, after, '+inf', 'WITHSCORES', 'LIMIT', count - limit, 1)[2]
    local retry_after = blocking and blocking + window - now or window
    reply[3 * i - 2] = 0
    reply[3 * i] = math.max(1, math.min(window, retry_after))
  end
end
return reply
