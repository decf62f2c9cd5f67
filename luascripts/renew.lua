-- renew.lua: put off the end of leases.
--
-- KEYS[i]  sorted set of leases, as admit.lua keeps it; a key may be there several times
-- ARGV[1]  now_ms    as in clock.lua
-- ARGV[2]  lease_ms  how long from now the leases last
-- ARGV[3…] request id in KEYS[1], in KEYS[2], …
--
-- Reply: one integer, the number of keys.
--
-- A lease that was ended or forgotten stays so. One that ran out is back, unless it is forgotten: what
-- holds it is still under way. O(log N) a lease. Redis 6.2 or newer.

local lease, forget = ARGV[2] + 0, 300000
for i, key in ipairs(KEYS) do
  redis.call('ZADD', key, 'XX', string.format('%d', now + lease), ARGV[2 + i])
  redis.call('PEXPIRE', key, string.format('%d', lease + forget))
end
return #KEYS
