-- sums.lua: the prelude of the scripts that read bounded windows, after clock.lua.
--
-- A bounded window is a string: the total, then a record of 16 bytes for each sixtieth of the window in which
-- something was taken, oldest first. A record is the time of the last request there, and the amount taken.
-- All are little-endian doubles. A record leaves the window at its time plus the window, so the window frees
-- amounts late, by less than a sixtieth, and never early. There are at most 61 records.

local pack, unpack = struct.pack, struct.unpack
local time = now + 0

-- slice is the number of the sixtieth in which a time lies.
local function slice(stamp, window) return math.floor(stamp / (window / 60)) end

-- add returns the records with an amount that is taken now.
local function add(records, window, amount)
  if records ~= '' then
    local stamp, weight = unpack('<dd', records, #records - 15)
    if slice(stamp, window) == slice(time, window) then
      return string.sub(records, 1, -17) .. pack('<dd', time, weight + amount)
    end
  end
  return records .. pack('<dd', time, amount)
end

-- read returns the total and the records of a window now. Records from the future, written before the clock
-- was set back, become one record of now; the third value says that there were any.
local function read(key, window)
  local text = redis.call('GET', key)
  if not text then return 0, '' end
  if #text % 16 ~= 8 then error('WRONGTYPE ' .. key .. ' holds no window') end
  local total, first = unpack('<d', text), 9
  while first < #text do
    local stamp, weight = unpack('<dd', text, first)
    if stamp > time - window then break end
    total, first = total - weight, first + 16
  end
  local last, ahead = #text - 15, 0
  while last >= first do
    local stamp, weight = unpack('<dd', text, last)
    if stamp <= time then break end
    ahead, last = ahead + weight, last - 16
  end
  local records = string.sub(text, first, last + 15)
  if ahead > 0 then return total, add(records, window, ahead), true end
  if records == '' then total = 0 end -- even if amounts were too large to be counted exactly
  return total, records
end

-- write stores a window for as long as it may be needed.
local function write(key, total, records, ttl)
  redis.call('SET', key, pack('<d', total) .. records, 'EX', ttl)
end

-- wait returns the ms until this amount has left, at most the window.
local function wait(records, window, amount)
  for at = 1, #records, 16 do
    local stamp, weight = unpack('<dd', records, at)
    amount = amount - weight
    if amount <= 0 then return math.max(1, math.ceil(stamp + window - time)) end
  end
  return window + 0
end

