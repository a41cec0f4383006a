-- Vacate: what Get says of another safe, if that holds anything. Delete follows.
-- KEYS[3] and KEYS[4] are the key and the text's key of that safe.

-- elsewhere returns what that safe holds, as found does, and the time that it has left.
local function elsewhere()
  local key, text = KEYS[1], KEYS[2]
  KEYS[1], KEYS[2] = KEYS[3], KEYS[4]
  local kind, content = found('GETEX')
  local left = redis.call('PTTL', KEYS[1])
  KEYS[1], KEYS[2] = key, text
  return kind, content, left
end

local kind, content, left = elsewhere()
if kind then
  return {kind, content, left}
elseif content then
  return content
end
