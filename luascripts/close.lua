-- close.lua: close a gate for a time, or for longer than it is closed already.
--
-- KEYS[1]  string, the gate of admit.lua
-- ARGV[1]  ms  how long, > 0
--
-- Reply: one integer, 1, or 0 where the gate is closed for longer.
--
-- O(1). Redis 6.2 or newer.

if redis.call('PTTL', KEYS[1]) >= ARGV[1] + 0 then return 0 end
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return 1
