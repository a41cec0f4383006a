-- Get: as the other look, for a register; the fourth field is the identity of a
-- server in quarantine, or ''. A kind of '' means that nothing is there.
-- ARGV: the identity for which the sender has waited.
local id = stranger(3, ARGV[1])
local kind, text = found('GETEX')
if kind then
  return {kind, text, redis.call('PTTL', KEYS[1]), id}
end
return text or {'', '', -2, id}
