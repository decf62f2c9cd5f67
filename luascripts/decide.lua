-- decide.lua: the prelude of the scripts that decide requests, behind clock.lua. It defines look and take,
-- for one exact log, and decide, for one request on several.
--
-- Written for few server cycles: what can stay a string does, since a number costs redis.call a
-- "%.17g" each time; '%d' formats faster, and to the digit below 2^53; KEYS and ARGV are looked up
-- once.

local keys, argv, call, format = KEYS, ARGV, redis.call, string.format

-- look trims a log and returns how many entries it holds, and retry_after_ms where the window is full. A
-- member that is in a full window already may pass: it is a repeat.
local function look(key, window, limit, member, ttl)
  call('ZREMRANGEBYSCORE', key, '0', format('%d', now - window))
  local count = call('ZCARD', key)
  local over = count - limit
  if over < 0 or call('ZSCORE', key, member) then return count end
  -- A limit that is NaN comes here, and rejects.

  -- The entry whose exit makes room: the oldest, or a later one where the limit was lowered.
  local index = over == 0 and '0' or format('%d', over)
  local blocking = call('ZRANGE', key, index, index, 'WITHSCORES')[2]
  local retry_after = window + 0
  if blocking then
    local exit = math.floor(blocking - now + window)
    if exit > retry_after then -- it is stamped in the future
      for _, ahead in ipairs(call('ZRANGEBYSCORE', key, '(' .. now, '+inf')) do
        call('ZADD', key, 'XX', now, ahead)
      end
      call('EXPIRE', key, ttl)
    elseif exit < retry_after then
      retry_after = exit < 1 and 1 or exit
    end
  end
  return count, retry_after
end

-- take adds a member to a log, and returns 1, or 0 for a repeat.
local function take(key, member, ttl)
  if call('ZADD', key, 'NX', now, member) == 0 then return 0 end
  call('EXPIRE', key, ttl)
  return 1
end

-- decide decides one request against sliding windows, all or none, as sliding_window.lua describes it. Its
-- keys follow behind KEYS[before], its arguments behind ARGV[said]: window_ms, limit, member, ttl_s, and
-- three more for each further window.
local function decide(before, windows, said)
  local window, limit, member, ttl = argv[said + 1], argv[said + 2], argv[said + 3], argv[said + 4]
  local _ = ttl + 0 -- one that is no number fails here, before anything is admitted
  local count, retry_after = look(keys[before + 1], window, limit, member, ttl)
  if retry_after then return {0, count, retry_after} end
  if windows == 1 then return {1, count + take(keys[before + 1], member, ttl), 0} end

  local reply = {1, count, 0}
  for i = 2, windows do
    local at = said + 3 * i -- its window_ms is one before
    _ = argv[at + 1] + 0
    count, retry_after = look(keys[before + i], argv[at - 1], argv[at], member, argv[at + 1])
    reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = retry_after and 0 or 1, count, retry_after or 0
    if retry_after then return reply end
  end
  for i = 1, windows do
    local taken = take(keys[before + i], member, argv[i == 1 and said + 4 or said + 3 * i + 1])
    reply[3 * i - 1] = reply[3 * i - 1] + taken
  end
  return reply
end

