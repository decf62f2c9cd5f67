-- decide.lua: the prelude of the scripts that decide requests. It defines decide.
--
-- Written for few server cycles: what can stay a string does, since a number costs redis.call a
-- "%.17g" each time; '%d' formats faster, and to the digit below 2^53; KEYS and ARGV are looked up
-- once.

local keys, argv, call, format = KEYS, ARGV, redis.call, string.format

local function restamp(key, ttl)
  for _, ahead in ipairs(call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do
    call('ZADD', key, 'XX', now, ahead)
  end
  call('EXPIRE', key, ttl)
end

-- decide decides one request against sliding windows, all or none, as sliding_window.lua describes it. Its
-- keys follow behind KEYS[before], its arguments behind ARGV[said]: window_ms, limit, member, ttl_s, and
-- three more for each further window.
local function decide(before, windows, said)
  local window, limit, member, ttl = argv[said + 1], argv[said + 2], argv[said + 3], argv[said + 4]
  local reply  -- of several windows
  local at = 1 -- where this window's part of it begins
  for i = 1, windows do
    local key = keys[before + i]
    local _ = ttl + 0 -- a TTL that is no number fails here, before anything is admitted

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
          restamp(key, ttl)
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
    window, limit, ttl = argv[said + at + 1], argv[said + at + 2], argv[said + at + 3]
  end

  at = 2
  for i = 1, windows do
    local key = keys[before + i]
    if call('ZADD', key, 'NX', now, member) == 1 then -- 0 is a repeat
      call('EXPIRE', key, argv[said + (i == 1 and 4 or at + 2)])
      reply[at] = reply[at] + 1
    end
    at = at + 3
  end
  return reply
end

