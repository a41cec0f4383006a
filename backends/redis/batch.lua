-- RefreshAll: of each key compare the text and PEXPIREAT. It is a script without
-- record.lua, since it runs for thousands of keys: nothing is decoded. A text that is
-- exactly the one expected has the signature, the token and the TTL expected.
-- KEYS: the records' keys. ARGV: for each a text and the TTL in it, in ms. Returns a
-- text with a 1 for each key that was refreshed, and a 0 for each of which that is not
-- known. GET alone may fail, since something of another type is there; where a record
-- cannot be written to, none can.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local marks = {}
for i, key in ipairs(KEYS) do
  marks[i] = '0'
  if redis.pcall('GET', key) == ARGV[2 * i - 1] then
    marks[i] = redis.call('PEXPIREAT', key, string.format('%.0f', now + ARGV[2 * i]))
  end
end
return table.concat(marks)
