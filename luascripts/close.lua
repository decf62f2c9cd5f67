-- close.lua: close a gate for a time. If it is closed for longer already, leave it so.
--
-- KEYS[1]  string, the gate of admit.lua
-- ARGV[1]  ms  how long, > 0
--
-- Reply: one integer, 1, or 0 if the gate was closed for longer already.
--
-- O(1). Redis 6.2 or newer.

if redis.call('PTTL', KEYS[1]) >= ARGV[1] + 0 then return 0 end
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return 1
