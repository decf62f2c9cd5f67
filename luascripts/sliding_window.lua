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
-- O(log N + expired entries) a window; at most two entries are read, but for entries of the future. Redis 6.2 or newer.

-- Written for few server cycles: what can stay a string does, since a number costs redis.call a
-- "%.17g" each time; '%d' formats faster, and to the digit below 2^53; KEYS and ARGV are looked up
-- once.

local keys, argv, call, format = KEYS, ARGV, redis.call, string.format
local windows = #keys
if #argv ~= 2 + 3 * windows then
  return redis.error_reply('ERR sliding_window: want 2 + 3 arguments for each key, got ' .. #argv)
end

local window, limit, member, ttl = argv[2], argv[3], argv[4], argv[5]

local function restamp(key, now, ttl)
  for _, ahead in ipairs(call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do
    call('ZADD', key, 'XX', now, ahead)
  end
  call('EXPIRE', key, ttl)
end

local reply  -- of several windows
local at = 1 -- where this window's part of it begins
for i = 1, windows do
  local key, _ = keys[i], ttl + 0 -- a TTL that is no number fails here, before anything is admitted

  call('ZREMRANGEBYSCORE', key, '0', format('%d', now - window))
  local count = call('ZCARD', key)

  local over = count - limit
  if not (over < 0) and not call('ZSCORE', key, member) then -- a limit that is NaN rejects
    -- The entry whose exit makes room: the oldest, or a later one where the limit was lowered.
    local index = over == 0 and '0' or format('%d', over)
    local blocking = call('ZRANGE', key, index, index, 'WITHSCORES')[2]
    local retry_after = window + 0
    if blocking then
      local exit = math.floor(blocking - now + window)
      if exit > retry_after then -- it is stamped in the future
        restamp(key, now, ttl)
      elseif exit < retry_after then
        retry_after = exit < 1 and 1 or exit
      end
    end
    if i == 1 then return {0, count, retry_after} end
    reply[at], reply[at + 1], reply[at + 2] = 0, count, retry_after
    return reply
  end

  if windows == 1 then -- admit at once, without the loop below
    if call('ZADD', key, 'NX', now, member) == 0 then return {1, count, 0} end
    call('EXPIRE', key, ttl)
    return {1, count + 1, 0}
  end
  reply = reply or {1, 0, 0}
  reply[at], reply[at + 1], reply[at + 2] = 1, count, 0
  at = at + 3
  window, limit, ttl = argv[at + 2], argv[at + 3], argv[at + 4]
end

at = 2
for i = 1, windows do
  if call('ZADD', keys[i], 'NX', now, member) == 1 then -- 0 is a repeat
    call('EXPIRE', keys[i], argv[i == 1 and 5 or at + 3])
    reply[at] = reply[at] + 1
  end
  at = at + 3
end
return reply
