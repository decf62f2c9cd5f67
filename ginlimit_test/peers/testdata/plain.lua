-- plain.lua: the sliding window as most people write it, to compare sliding_window.lua with.
--
-- One key, the caller's clock, four calls, tonumber everywhere. It takes the arguments and gives the
-- replies of sliding_window.lua for one window, but counts a repeated request twice.
--
-- KEYS[1]  sorted set: score = Unix time in ms, member = request id
-- ARGV     now_ms, window_ms, limit, member, ttl_s

local key = KEYS[1]
local now = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local limit = tonumber(ARGV[3])
local member = ARGV[4]
local ttl = tonumber(ARGV[5])

redis.call('ZREMRANGEBYSCORE', key, 0, now - window)
local count = redis.call('ZCARD', key)
if count < limit then
  redis.call('ZADD', key, now, member)
  redis.call('EXPIRE', key, ttl)
  return {1, count + 1, 0}
end
local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
return {0, count, tonumber(oldest[2]) + window - now}
