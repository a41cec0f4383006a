-- Create: SET key text NX PXAT, with a token that only the server can give.
-- ARGV: text without numbers, value, TTL in ms, channel, quarantine in ms. Nil if
-- anything is there, or the server is too new to know (KEYS[4] tells). BADTEXT if
-- somebody else's is where the text belongs.
if not settled(4, ARGV[5]) or redis.call('EXISTS', KEYS[1]) == 1 then
  return false
end
if plain and not free() then
  return redis.error_reply('BADTEXT another program\'s is at ' .. KEYS[2])
end
local n, damage, before = draw()
if damage then
  return redis.error_reply(damage)
end
local text = store(numbered(ARGV[1], n, n), ARGV[2], 'PXAT', instant(ARGV[3]))
hint(ARGV[4], before, text)
return text
