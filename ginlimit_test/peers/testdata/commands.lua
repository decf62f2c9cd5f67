-- commands.lua: what sliding_window.lua asks of Redis to admit into one window on the server's
-- clock, without deciding.
local call = redis.call
call('TIME')
call('ZREMRANGEBYSCORE', KEYS[1], '0', ARGV[1])
call('ZCARD', KEYS[1])
call('ZADD', KEYS[1], 'NX', ARGV[2], ARGV[3])
call('EXPIRE', KEYS[1], '61')
return 1
