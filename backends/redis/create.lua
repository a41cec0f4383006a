-- Create: SET key text NX PX ttl, with a token that only the server can give.
-- ARGV: text without numbers, TTL in ms, channel, quarantine in ms. Nil if
-- anything is there, or the server is too new to know (KEYS[3] tells).
if not settled(3, ARGV[4]) or redis.call('EXISTS', KEYS[1]) == 1 then
  return false
end
local n, damage = draw()
if damage then
  return redis.error_reply(damage)
end
local text = numbered(ARGV[1], n, n)
redis.call('SET', KEYS[1], text, 'PX', ARGV[2])
hint(ARGV[3])
return text
