-- Delete: compare and DEL.
-- ARGV: signature, token, channel. Nil if the key holds anything else.
if not owned(ARGV[1], ARGV[2]) then
  return false
end
redis.call('DEL', KEYS[1])
hint(ARGV[3])
return 1
