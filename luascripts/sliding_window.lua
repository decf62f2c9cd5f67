-- sliding_window.lua: decide one request on sliding windows, all or none.
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
--   rejected: the same for the windows with room (count without this request), and then
--             {0, count, retry_after_ms} for the first full one, which ends the reply.
--   retry_after_ms, 1 to window_ms: until this window admits a call, if no other call comes.
--
-- A rejection only trims, and does not touch the keys after the full one. There is one exception: the entry
-- to wait for has a time in the future, because the clock was ahead and went back. All such entries of the
-- key then get the time now, and the key a new TTL. So retry_after_ms is true from then on. The entries were
-- admitted before now, so nothing is admitted too early.
--
-- A member that was admitted before is admitted again and counted once: a client that lost the reply may send
-- the call again.
--
-- O(log N + expired entries) a window; at most two entries are read, except for entries from the future.
-- Redis 6.2 or newer.

if #argv ~= 2 + 3 * #keys then
  return redis.error_reply('ERR sliding_window: want 2 + 3 arguments for each key, got ' .. #argv)
end
return decide(0, #keys, 1)
