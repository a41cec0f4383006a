-- Swap: compare and set at a revision.
-- ARGV: signature, token, revision; next text without numbers; TTL in ms for
-- another signature, '' to publish under the same one; channel. Nil if the key
-- holds anything else.
local rec = owned(ARGV[1], ARGV[2])
if not rec or rec.revision ~= tonumber(ARGV[3]) then
  return false
end
local n, damage = draw()
if damage then
  return redis.error_reply(damage)
end
local text
if ARGV[5] ~= '' then
  text = numbered(ARGV[4], n, n)
  redis.call('SET', KEYS[1], text, 'PX', ARGV[5])
else
  text = numbered(ARGV[4], ARGV[2], n)
  if redis.call('PTTL', KEYS[1]) < 0 then -- somebody has stripped it
    redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', rec.ttl_ms))
  else
    redis.call('SET', KEYS[1], text, 'KEEPTTL')
  end
end
hint(ARGV[6])
return text
