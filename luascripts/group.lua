-- group.lua: decide several requests, one after the other, each like sliding_window.lua.
--
-- KEYS[i]  the keys of the first request, then those of the second, …; on a Cluster all share a slot
-- ARGV[1]  now_ms     as in clock.lua, one for all
-- ARGV[2]  windows    how many keys the first request has
-- ARGV[3…] window_ms, limit, member, ttl_s, …   its arguments 2 to the last in sliding_window.lua; then
--          windows and these for the second request, …
--
-- Reply: an array with the reply of sliding_window.lua for each request, in their order.
--
-- A request sees what the requests before it took. If one request has an error, such as a key of the wrong
-- type, the error is the reply to all; the requests before it are decided. All may be sent again, since a
-- repeat counts once.
--
-- O(log N + expired entries) a window. Redis 6.2 or newer.

local replies, before, said = {}, 0, 2
while said <= #argv do
  local windows = argv[said] + 0
  replies[#replies + 1] = decide(before, windows, said)
  before, said = before + windows, said + 2 + 3 * windows
end
return replies
