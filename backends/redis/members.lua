-- The records of members at one instant: of each key its type, its content if that is a string,
-- and the time left. Nil instead of the three if nothing is there. KEYS: the records.
local all = {}
for i, key in ipairs(KEYS) do
  local content = redis.pcall('GETEX', key)
  if type(content) == 'table' then
    if not string.find(content.err, 'WRONGTYPE', 1, true) then
      return content
    end
    all[i] = {redis.call('TYPE', key).ok, '', redis.call('PTTL', key)}
  elseif content then
    all[i] = {'record', content, redis.call('PTTL', key)}
  else
    all[i] = false
  end
end
return all
