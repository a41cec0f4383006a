-- HandOver: compare and set at a revision, if another safe holds the heir at one.
-- KEYS[4] and KEYS[5] are the key and the text's key of that safe.
-- ARGV: signature, token, revision; those of the heir; next text without numbers,
-- value; TTL in ms; channel. Nil if either safe holds anything else.

-- elsewhere is owned for the heir's safe.
local function elsewhere(signature, token)
  local key, text = KEYS[1], KEYS[2]
  KEYS[1], KEYS[2] = KEYS[4], KEYS[5]
  local rec, answer = owned(signature, token)
  KEYS[1], KEYS[2] = key, text
  return rec, answer
end

local heir, answer = elsewhere(ARGV[4], ARGV[5])
if not heir then
  return answer
end
local rec
rec, answer = owned(ARGV[1], ARGV[2])
if not rec then
  return answer
end
if heir.revision ~= tonumber(ARGV[6]) or rec.revision ~= tonumber(ARGV[3]) then
  return false
end
local n, damage = draw()
if damage then
  return redis.error_reply(damage)
end
local text = store(numbered(ARGV[7], n, n), ARGV[8], 'PXAT', instant(ARGV[9]))
hint(ARGV[10], ARGV[3], text)
return text
