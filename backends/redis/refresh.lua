-- Refresh: compare and PEXPIREAT, with the TTL that the record itself tells. It
-- restores a TTL that somebody has stripped, and never brings a key back.
-- ARGV: signature, token. Nil if the safe holds anything else.
local rec, text = owned(ARGV[1], ARGV[2])
if not rec then
  return text
end
local at = instant(rec.ttl_ms)
redis.call('PEXPIREAT', KEYS[1], at)
if plain then
  redis.call('PEXPIREAT', KEYS[2], at)
end
return text
