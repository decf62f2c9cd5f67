-- clock.lua: the prelude of every script that reads the time. It sets now, a Unix time in ms, as text.
--
-- ARGV[1]  now_ms  Unix time in ms, >= 0; empty = this server's TIME, one clock for the fleet
--
-- Redis replies to TIME with two strings, some compatible servers with two integers.

local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  local us = time[2]
  if type(us) == 'string' and #us == 6 then
    now = time[1] .. string.sub(us, 1, 3) -- nearly always, and in fewer cycles
  else
    now = string.format('%.0f', time[1] * 1000 + math.floor(us / 1000))
  end
end

