-- Create of a member of a roster: create.lua, and the member's key in the roster's set. It also
-- looks at some members that were drawn from the set, and strikes off those that are gone.
-- KEYS: as create.lua has four, then the set, then the records of those drawn. ARGV: as
-- create.lua has five, then the member's key, then those of the others. BADSET if somebody
-- else's is where the set belongs: then nothing was done.
local kind = redis.call('TYPE', KEYS[5]).ok
if kind ~= 'none' and kind ~= 'zset' then
  return redis.error_reply('BADSET a ' .. kind .. ' is at ' .. KEYS[5])
end
local answer = create()
if type(answer) == 'string' then
  redis.call('ZADD', KEYS[5], 0, ARGV[6])
  for i = 6, #KEYS do
    if KEYS[i] ~= KEYS[1] and redis.call('EXISTS', KEYS[i]) == 0 then
      redis.call('ZREM', KEYS[5], ARGV[i + 1])
    end
  end
end
return answer
