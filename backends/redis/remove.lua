-- Remove: compare, at a revision, and DEL.
-- ARGV: signature, token, revision; channel. Nil if the safe holds anything else.
local rec, answer = held(ARGV[1], ARGV[2], ARGV[3])
if not rec then
  return answer
end
redis.call('DEL', KEYS[1])
hint(ARGV[4])
return 1
