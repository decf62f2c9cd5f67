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

-- Written for few server cycles: what can stay a string does, since a number costs redis.call a
-- "%.17g" each time; '%d' formats faster, and to the digit below 2^53; the reply is filled in place.

if #ARGV ~= 2 + 3 * #KEYS then
  return redis.error_reply('ERR sliding_window: want 2 + 3 arguments for each key, got ' .. #ARGV)
end
local call, format = redis.call, string.format
local now, member = ARGV[1], ARGV[4]
if now == '' then
  local time = call('TIME')
  local us = time[2]
  now = time[1] .. (#us == 6 and string.sub(us, 1, 3) or format('%03d', us / 1000))
end

local reply = {1, 0, 0}
for i = 1, #KEYS do
  local key, at = KEYS[i], i == 1 and 2 or 3 * i
  local window, limit = ARGV[at], ARGV[at + 1]
  local _ = ARGV[i == 1 and 5 or at + 2] + 0 -- a TTL that is no number fails here, before any write

  call('ZREMRANGEBYSCORE', key, '0', format('%d', now - window))
  local count = call('ZCARD', key)

  if count - limit >= 0 and not call('ZSCORE', key, member) then
    -- The entry whose exit makes room: the oldest, or a later one where the limit was lowered.
    local index = format('%d', count - limit)
    local blocking = call('ZRANGE', key, index, index, 'WITHSCORES')[2]
    window = tonumber(window)
    local retry_after = blocking and blocking + window - now or window
    reply[3 * i - 2], reply[3 * i - 1] = 0, count
    reply[3 * i] = math.max(1, math.min(window, retry_after))
    return reply
  end
  reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = 1, count, 0
end

for i = 1, #KEYS do
  if call('ZADD', KEYS[i], 'NX', now, member) == 1 then -- 0 is a repeat
    call('EXPIRE', KEYS[i], ARGV[i == 1 and 5 or 3 * i + 2])
    reply[3 * i - 1] = reply[3 * i - 1] + 1
  end
end
return reply
