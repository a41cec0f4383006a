-- A page of a roster's set: the members' keys after one, or from the first. A ZREM of what is
-- never there counts as a write, so a server refuses it that may not write (see look.lua).
-- KEYS: the set. ARGV: where to begin, as ZRANGEBYLEX wants it, and how many. BADSET if somebody
-- else's is there.
local answer = redis.pcall('ZREM', KEYS[1], '')
if type(answer) == 'table' and answer.err and string.find(answer.err, 'WRONGTYPE', 1, true) then
  return redis.error_reply('BADSET a ' .. redis.call('TYPE', KEYS[1]).ok .. ' is at ' .. KEYS[1])
elseif type(answer) == 'table' then
  return answer
end
return redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2])
