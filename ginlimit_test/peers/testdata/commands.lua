-- What a decision on one window asks of Redis, and nothing else: no deciding, no arguments to look
-- at or to compute, no member to find again. An exact log in a sorted set costs at least this.
local call = redis.call
call('TIME')
call('ZREMRANGEBYSCORE', KEYS[1], '0', ARGV[1])
call('ZCARD', KEYS[1])
call('ZADD', KEYS[1], 'NX', ARGV[2], ARGV[3])
call('EXPIRE', KEYS[1], '61')
return 1
