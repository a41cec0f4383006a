-- Put, under another signature than the present one: SET, if nothing is there, or
-- if what is there is the record given, at that revision. KEYS[3] is the counter,
-- KEYS[4] where a server is known to be settled.
-- ARGV: signature (or ''), token, revision; next signature, next text without
-- numbers, next revision; channel; the identity for which the sender has waited.
-- Nil if the safe holds anything else; the identity, in a list, of a server that may
-- have forgotten what it held.
local done = repeated(ARGV[4], ARGV[6])
if done then
  return done
end
if ARGV[1] == '' then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return false
  end
else
  local rec, answer = held(ARGV[1], ARGV[2], ARGV[3])
  if not rec then
    return answer
  end
end
local id = stranger(4, ARGV[8])
if id ~= '' then
  return {id}
end
local n, damage = draw()
if damage then
  return redis.error_reply(damage)
end
local text = store(numbered(ARGV[5], n, ARGV[6]), '')
hint(ARGV[7])
return text
