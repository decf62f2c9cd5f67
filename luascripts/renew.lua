-- renew.lua: extend leases.
--
-- KEYS[i]  sorted set of leases, as admit.lua keeps it; a key may be given several times
-- ARGV[1]  now_ms    as in clock.lua
-- ARGV[2]  lease_ms  how long from now the leases last
-- ARGV[3…] request id in KEYS[1], in KEYS[2], …
--
-- Reply: one integer, the number of keys. If a key has an error, such as the wrong type, the others are
-- renewed and the error is the reply.
--
-- A lease that was ended or forgotten stays so. One that ran out is valid again, unless it is forgotten: its
-- request is still in progress. O(log N) a lease. Redis 6.2 or newer.

local lease, forget, format = ARGV[2] + 0, 300000, string.format
local failed
local function try(...)
  local reply = redis.pcall(...)
  failed = failed or type(reply) == 'table' and reply.err and reply
end

-- When memory is full, Redis lets a script write if its first command can free memory, even if it frees none.
try('ZREMRANGEBYSCORE', KEYS[1], '1', '0')
local ends, ttl = format('%d', now + lease), format('%d', lease + forget)
for i, key in ipairs(KEYS) do
  try('ZADD', key, 'XX', ends, ARGV[2 + i])
  try('PEXPIRE', key, ttl)
end
return failed or #KEYS
