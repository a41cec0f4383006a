-- Delete: compare and DEL.
-- ARGV: signature, token, channel. Nil if the safe holds anything else.
local rec, answer = owned(ARGV[1], ARGV[2])
if not rec then
  return answer
end
redis.call('DEL', KEYS[1], KEYS[2])
hint(ARGV[3], string.format('%.0f', rec.revision))
return 1
