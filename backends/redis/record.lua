-- The beginning of every script. KEYS[1] is the record's key; KEYS[2], where a
-- script draws a number, is the counter's.

-- owned returns the record, decoded and as text, if the key holds one with this
-- signature and token. Anything else, of whatever type, is somebody else's.
local function owned(signature, token)
  if redis.call('TYPE', KEYS[1]).ok ~= 'string' then
    return nil
  end
  local text = redis.call('GET', KEYS[1])
  local ok, rec = pcall(cjson.decode, text)
  if not ok or type(rec) ~= 'table' or rec.election ~= 1
    or rec.signature ~= signature or rec.token ~= tonumber(token) then
    return nil
  end
  return rec, text
end

-- draw returns a number, as text, that is larger than every one drawn before: by
-- the counter, and if that was lost, by the server's clock in microseconds. It
-- stays below 2^53, up to which a Lua number counts exactly, until the year 2255.
-- A counter that is damaged is left as it is; its description is the second
-- result. The counter is written before anything else, so that an error here
-- leaves nothing done.
local function draw()
  local last, kind = 0, redis.call('TYPE', KEYS[2]).ok
  if kind == 'string' then
    last = tonumber(string.match(redis.call('GET', KEYS[2]), '^%d+$'))
  elseif kind ~= 'none' then
    last = nil
  end
  if not last or last >= 9007199254740991 then
    return nil, 'BADCOUNTER no number below 2^53 is at ' .. KEYS[2]
  end
  local now = redis.call('TIME')
  local n = string.format('%.0f', math.max(last + 1, now[1] * 1000000 + now[2]))
  redis.call('SET', KEYS[2], n)
  return n
end

-- numbered adds token and revision to a text that has none. They are written as
-- text since cjson would round them.
local function numbered(text, token, revision)
  return string.sub(text, 1, -2) .. ',"token":' .. token .. ',"revision":' .. revision .. '}'
end

-- settled reports whether the server has been known at KEYS[n] for so many
-- milliseconds, or need not be: one that was restarted or promoted since may have
-- forgotten a record whose owner still trusts it. A server's identity is that of
-- the process and of the data set: a promotion changes the latter. What is at the
-- key is the identity, and since when it is known, in microseconds.
local function settled(n, ms)
  if tonumber(ms) == 0 then
    return true
  end
  local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
  local id = string.match(info, 'run_id:(%x+)') .. string.match(info, 'master_replid:(%x+)')
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local known, since = nil, nil
  if redis.call('TYPE', KEYS[n]).ok == 'string' then
    known, since = string.match(redis.call('GET', KEYS[n]), '^(%x+) (%d+)$')
  end
  if known ~= id or tonumber(since) > now then
    redis.call('SET', KEYS[n], id .. ' ' .. string.format('%.0f', now))
    return false
  end
  return now - tonumber(since) >= tonumber(ms) * 1000
end

-- hint tells the watches to look. It may fail (an ACL forbids the channel): they
-- look anyway, only later, and the write has happened.
local function hint(channel)
  redis.pcall('PUBLISH', channel, '')
end
