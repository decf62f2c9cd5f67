-- give_back.lua: take an admitted request out of its windows again, as if it had never come.
--
-- KEYS[i]  sorted set, the log of one window, as sliding_window.lua keeps it
-- ARGV[1]  now_ms     as in clock.lua
-- ARGV[2]  member     request id
-- ARGV[3…] window_ms (> 0) of KEYS[1], of KEYS[2], …
--
-- Reply: one integer, the number of windows that held the request.
--
-- The TTL goes back to what the newest remaining entry gave the key (its score + window + 1 s),
-- so that a request which was rejected in the end has extended nothing. It is never lengthened.
-- Safe to repeat. O(log N) a window. Redis 6.2 or newer.

local given_back = 0
for i, key in ipairs(KEYS) do
  if redis.call('ZREM', key, ARGV[2]) == 1 then
    given_back = given_back + 1
    local newest = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    if newest then
      local ttl = math.max(1, newest - now + ARGV[2 + i] + 1000)
      local left = redis.call('PTTL', key)
      if left < 0 or ttl < left then
        redis.call('PEXPIRE', key, ttl)
      end
    end
  end
end
return given_back
