-- Get: TYPE, GET and PTTL at one instant. Nil if nothing is there.
-- The DEL of KEYS[2], which never exists, changes nothing and is not replicated;
-- but a server that may not write refuses it, so that no replica, and no primary
-- cut off from the replicas that it is to have, passes off an old state as the
-- present one.
redis.call('DEL', KEYS[2])
local kind = redis.call('TYPE', KEYS[1]).ok
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  return false
end
return {kind, kind == 'string' and redis.call('GET', KEYS[1]) or '', left}
