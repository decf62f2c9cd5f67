-- redis.lua: as much of Redis as the scripts call, on logs that all begin as LOG, with TIME as the time.
-- Scores are the text that Redis replies with. Like a server, it takes strings and numbers for arguments and
-- returns a script's integers alone.

struct = {pack = string.pack, unpack = string.unpack}

local logs, texts = {}, {}
local function log_of(key)
  if not logs[key] then
    logs[key] = {}
    for member, score in pairs(LOG) do logs[key][member] = score end
  end
  return logs[key]
end

local function whole(number)
  local n = math.tointeger(tonumber(number))
  assert(n, 'not a whole number: ' .. tostring(number))
  return n
end

local function bound(text)
  if text == '+inf' then return math.huge, true end
  local open = string.sub(text, 1, 1) == '('
  return whole(open and string.sub(text, 2) or text), not open
end

local function sorted(log)
  local members = {}
  for member in pairs(log) do table.insert(members, member) end
  table.sort(members, function(a, b) return log[a] < log[b] or log[a] == log[b] and a < b end)
  return members
end

local function between(log, low, high)
  local found, from, closed = {}, bound(low)
  local to = bound(high)
  for _, member in ipairs(sorted(log)) do
    local score = log[member]
    if (score > from or closed and score == from) and score <= to then table.insert(found, member) end
  end
  return found
end

local commands = {
  TIME = function() return TIME end,
  ZREMRANGEBYSCORE = function(key, low, high)
    for _, member in ipairs(between(log_of(key), low, high)) do logs[key][member] = nil end
  end,
  ZCARD = function(key) return #sorted(log_of(key)) end,
  ZCOUNT = function(key, low, high) return #between(log_of(key), low, high) end,
  ZSCORE = function(key, member) return log_of(key)[member] and tostring(log_of(key)[member]) or false end,
  ZRANGE = function(key, from, to)
    local members, found = sorted(log_of(key)), {}
    local first = whole(from) < 0 and #members + whole(from) or whole(from)
    local member = members[first + 1]
    if member then found = {member, tostring(logs[key][member])} end
    return found
  end,
  ZRANGEBYSCORE = function(key, low, high, _, _, offset)
    local found = between(log_of(key), low, high)
    if not offset then return found end
    local member = found[whole(offset) + 1]
    return member and {member, tostring(logs[key][member])} or {}
  end,
  ZADD = function(key, mode, score, member)
    if not member then mode, score, member = 'NX', mode, score end
    local old = log_of(key)[member]
    if (mode == 'NX') == (old == nil) then logs[key][member] = whole(score) end
    return old and 0 or 1
  end,
  ZREM = function(key, member)
    local old = log_of(key)[member]
    logs[key][member] = nil
    return old and 1 or 0
  end,
  GET = function(key) return texts[key] or false end,
  SET = function(key, text, _, seconds)
    whole(seconds)
    texts[key] = text
  end,
  EXPIRE = function(_, seconds) whole(seconds) end,
  PEXPIRE = function(_, ms) whole(ms) end,
  PTTL = function() return 61000 end,
}

redis = {call = function(name, ...) return commands[name](...) end, error_reply = error}

local function integers(reply)
  for i, value in ipairs(reply) do
    assert(math.type(value) == 'integer', 'reply ' .. i .. ' is ' .. tostring(value))
  end
  return table.concat(reply, ' ')
end

function report(script)
  local reply = script()
  if type(reply) ~= 'table' then reply = {reply} end
  if type(reply[1]) ~= 'table' then return print(integers(reply)) end
  local each = {}
  for i, one in ipairs(reply) do each[i] = integers(one) end
  print(table.concat(each, ' | '))
end
