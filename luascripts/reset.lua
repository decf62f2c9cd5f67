-- reset.lua: delete what was counted under these keys.
--
-- KEYS[i]  a key of any form
-- ARGV     none
--
-- Reply: one integer, the number of keys that existed.
--
-- All keys are deleted in one step, so that no call can find one window empty and another full. The memory is
-- freed in the background. O(keys). Redis 6.2 or newer.

local existed = 0
for _, key in ipairs(KEYS) do
  existed = existed + redis.call('UNLINK', key)
end
return existed
