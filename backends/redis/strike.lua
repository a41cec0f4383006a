-- Delete of a member of a roster: delete.lua, and the member's key leaves the roster's set.
-- KEYS: as delete.lua has two, then the set. ARGV: as delete.lua has three, then the member's key.
local answer = delete()
if answer == 1 then
  redis.pcall('ZREM', KEYS[3], ARGV[4])
end
return answer
