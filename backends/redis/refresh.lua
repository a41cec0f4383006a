-- Refresh: compare and PEXPIRE, with the TTL that the record itself tells. It
-- restores a TTL that somebody has stripped, and never brings a key back.
-- ARGV: signature, token. Nil if the key holds anything else.
local rec, text = owned(ARGV[1], ARGV[2])
if not rec then
  return false
end
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', rec.ttl_ms))
return text
