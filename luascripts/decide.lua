-- decide.lua: the prelude of the scripts that decide requests, after clock.lua. It defines look and take, for
-- one exact log, and decide, for one request on several logs.
--
-- It is written to need few server cycles: values stay strings if possible, because redis.call formats each
-- number with "%.17g"; '%d' is faster, and exact below 2^53; KEYS and ARGV are looked up once.

local keys, argv, call, format = KEYS, ARGV, redis.call, string.format

-- look trims a log and returns how many entries it holds and, if the window is full, retry_after_ms. A member
-- that is already in a full window passes: it is a repeat.
local function look(key, window, limit, member, ttl)
  call('ZREMRANGEBYSCORE', key, '0', format('%d', now - window))
  local count = call('ZCARD', key)
  local over = count - limit
  if over < 0 or call('ZSCORE', key, member) then return count end
  -- A limit of NaN gets here, and rejects.

  -- The entry that must leave first: the oldest, or a later one if the limit was lowered.
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

-- take adds a member to a log. It returns 1, or 0 for a repeat.
local function take(key, member, ttl)
  if call('ZADD', key, 'NX', now, member) == 0 then return 0 end
  call('EXPIRE', key, ttl)
  return 1
end

-- decide decides one request on sliding windows, all or none, as sliding_window.lua describes. Its keys come
-- after KEYS[before], its arguments after ARGV[said]: window_ms, limit, member, ttl_s, and three more for
-- each further window.
local function decide(before, windows, said)
  local window, limit, member, ttl = argv[said + 1], argv[said + 2], argv[said + 3], argv[said + 4]
  local _ = ttl + 0 -- a ttl that is not a number fails here, before anything is admitted
  local count, retry_after = look(keys[before + 1], window, limit, member, ttl)
  if retry_after then return {0, count, retry_after} end
  if windows == 1 then return {1, count + take(keys[before + 1], member, ttl), 0} end

  local reply = {1, count, 0}
  for i = 2, windows do
    local at = said + 3 * i -- the index of its limit
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

