-- sliding_window.lua: decide one request against sliding windows, all or none.
--
-- KEYS[i]  sorted set, the log of one window: score = Unix time in ms, member = request id.
--          Shortest window first; on a Cluster all of them share a slot.
-- ARGV[1]  now_ms     as in clock.lua
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
-- A rejection writes nothing but the trim, and does not touch the keys behind the full one. One case is
-- apart: the entry to wait for is stamped in the future, since the clock has been ahead and came back.
-- All such entries of the key are then stamped anew, with now, and the TTL with them: retry_after_ms is
-- true from then on, and since they were admitted before now, nothing is admitted too early.
--
-- A member that was admitted before is admitted again and counted once: a client that lost the
-- reply may send the call again.
--
-- O(log N + expired entries) a window; at most two entries are read, but for entries of the future.
-- Redis 6.2 or newer.

if #argv ~= 2 + 3 * #keys then
  return redis.error_reply('ERR sliding_window: want 2 + 3 arguments for each key, got ' .. #argv)
end
return decide(0, #keys, 1)
