-- Get: GET, PTTL and, if need be, TYPE at one instant. Nil if nothing is there.
-- GETEX without options is a GET that counts as a write, so that a server
-- refuses it that may not write: no replica, and no primary cut off from the
-- replicas that it is to have, passes off an old state as the present one.
-- ARGV: quarantine in ms, which begins when somebody looks (KEYS[3] tells).
settled(3, ARGV[1])
local kind, text = found('GETEX')
if not kind then
  return text
end
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  return false
end
return {kind, text, left}
