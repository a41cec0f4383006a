-- Swap: compare and set at a revision.
-- ARGV: signature, token, revision; next text without numbers, value; TTL in ms
-- for another signature, '' to publish under the same one; channel. Nil if the
-- safe holds anything else.
local rec, answer = owned(ARGV[1], ARGV[2])
if not rec then
  return answer
end
if rec.revision ~= tonumber(ARGV[3]) then
  return false
end
local n, damage = draw()
if damage then
  return redis.error_reply(damage)
end
local text
if ARGV[6] ~= '' then
  text = store(numbered(ARGV[4], n, n), ARGV[5], 'PXAT', instant(ARGV[6]))
elseif redis.call('PTTL', KEYS[1]) < 0 then -- somebody has stripped it
  text = store(numbered(ARGV[4], ARGV[2], n), ARGV[5], 'PXAT', instant(rec.ttl_ms))
else
  text = store(numbered(ARGV[4], ARGV[2], n), ARGV[5], 'KEEPTTL')
end
hint(ARGV[7], ARGV[3], text)
return text
