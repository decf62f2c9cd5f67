-- sliding_window.lua: decide one request against sliding windows, all or none.
--
-- KEYS[i]  sorted set, the log of one window: score = Unix time in ms, member = request id.
--          Shortest window first; on a Cluster all of them share a slot.
-- ARGV[1]  now_ms     Unix time in ms, >= 0; empty = this server's TIME, one clock for the fleet
-- ARGV[2]  window_ms  length of KEYS[1]'s window in ms, > 0; half-open: (now - window, now]
-- ARGV[3]  limit      requests that KEYS[1]'s window holds; 0 or less rejects
-- ARGV[4]  member     request id, the same for all keys and for a repeat of this request
-- ARGV[5]  ttl_s      seconds that KEYS[1] outlives its last admission: window + 1
-- ARGV[6…] window_ms, limit, ttl_s of KEYS[2], of KEYS[3], …
--
-- Reply: three integers a window, in the order of KEYS.
--   admitted: {1, count, 0} for each window; count includes this request.
--   rejected: the same for the windows that have room (count without this request), and
--             {0, count, retry_after_ms} for the first that has none, which ends the reply.
--   retry_after_ms, 1 to window_ms: until this window admits a call, if nobody else comes.
--
-- A rejection writes nothing but the trim, and does not touch the keys behind the full one.
-- A member that was admitted before is admitted again and counted once: a client that lost the
-- reply may send the call again.
--
-- O(log N + expired entries) a window; at most two entries are read. Redis 6.2 or newer.

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = time[1] .. string.sub('00000' .. time[2], -6, -4)
end
local member = ARGV[4]

local reply, admitted_before = {}, {}
for i, key in ipairs(KEYS) do
  local at = i == 1 and 2 or 3 * i
  local window, limit = tonumber(ARGV[at]), tonumber(ARGV[at + 1])

  redis.call('ZREMRANGEBYSCORE', key, 0, now - window)
  local count = redis.call('ZCARD', key)

  if count >= limit then
    admitted_before[i] = redis.call('ZSCORE', key, member)
    if not admitted_before[i] then
      -- The entry whose exit makes room: the oldest, or a later one where the limit was lowered.
      local blocking = redis.call('ZRANGE', key, count - limit, count - limit, 'WITHSCORES')[2]
      local retry_after = blocking and blocking + window - now or window
      reply[3 * i - 2] = 0
      reply[3 * i - 1] = count
      reply[3 * i] = math.max(1, math.min(window, retry_after))
      return reply
    end
  end

  reply[3 * i - 2] = 1
  reply[3 * i - 1] = count
  reply[3 * i] = 0
end

for i, key in ipairs(KEYS) do
  if not admitted_before[i] and redis.call('ZADD', key, 'NX', now, member) == 1 then
    redis.call('EXPIRE', key, ARGV[i == 1 and 5 or 3 * i + 2])
    reply[3 * i - 1] = reply[3 * i - 1] + 1
  end
end
return reply
