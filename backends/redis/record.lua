-- The beginning of every script, but for a line that says who judges the expiry of
-- its records: local observed = true if their observers do, false if the server
-- does. A record of the one kind is nothing to the scripts of the other. KEYS[1] is the key that other programs look at,
-- KEYS[2] that of the record's text. They are one key, unless the value is to
-- stand at KEYS[1] by itself: then a line break and the value once more follow the
-- text at KEYS[2]. KEYS[3], where a script draws a number, is the counter's.

local plain = KEYS[1] ~= KEYS[2]

-- together reports whether both keys expire in the same millisecond, or neither
-- ever does. Redis 6.2 has no PEXPIRETIME. Its PTTL counts by a clock that goes on
-- between two calls, so that the other key's lies between two of the one's: it
-- need not be the same millisecond if that clock ticked just then, and in the last
-- one of either.
local function together()
  local first = redis.pcall('PEXPIRETIME', KEYS[1])
  if type(first) == 'number' then
    return first == redis.call('PEXPIRETIME', KEYS[2])
  end
  first = redis.call('PTTL', KEYS[1])
  local other = redis.call('PTTL', KEYS[2])
  return first >= other and other >= redis.call('PTTL', KEYS[1])
end

-- found returns what the safe holds, read by GET or the like, as a kind and a text:
-- a 'record', which is ours as far as its place can tell; a 'string' or a thing of
-- another type, which is not. Or else nil, and what the script is to answer.
local function found(get)
  local content = redis.pcall(get, KEYS[1])
  if not content then
    return nil, false
  elseif type(content) == 'table' then
    if not string.find(content.err, 'WRONGTYPE', 1, true) then
      return nil, content
    end
    return redis.call('TYPE', KEYS[1]).ok, ''
  elseif not plain then
    return 'record', content
  end
  if redis.call('TYPE', KEYS[2]).ok == 'string' then
    local text = redis.call('GET', KEYS[2])
    local brk = string.find(text, '\n', 1, true)
    if brk and string.sub(text, brk + 1) == content and together() then
      return 'record', text
    end
  end
  return 'string', content
end

-- decoded returns the record of this kind that a text is of, or nil.
local function decoded(text)
  if plain then
    text = string.match(text, '^(.-)\n') or ''
  end
  local ok, rec = pcall(cjson.decode, text)
  if ok and type(rec) == 'table' and rec.election == 1 and type(rec.signature) == 'string'
    and (rec.observed == true) == observed then
    return rec
  end
end

-- free reports whether a text may be put at KEYS[2] while KEYS[1] is vacant:
-- nothing is there, or what an earlier record has left.
local function free()
  local kind = redis.call('TYPE', KEYS[2]).ok
  return kind == 'none' or kind == 'string' and decoded(redis.call('GET', KEYS[2])) ~= nil
end

-- owned returns the record, decoded and as text, if the safe holds the one with
-- this signature and token. Or else nil, and what the script is to answer: nil
-- again if the safe is vacant or anything in it, of whatever type, somebody else's.
-- By GET: a script that has written, as GETEX counts, is not held to maxmemory any
-- more, and nobody can kill it.
local function owned(signature, token)
  local kind, text = found('GET')
  if not kind then
    return nil, text
  end
  local rec = kind == 'record' and decoded(text)
  if not rec or rec.signature ~= signature or rec.token ~= tonumber(token) then
    return nil, false
  end
  return rec, text
end

-- instant returns the time in so many milliseconds, as PXAT and PEXPIREAT want it.
local function instant(ms)
  local now = redis.call('TIME')
  return string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + ms)
end

-- store writes a record, and returns its text. Options of SET follow, for both
-- keys: their expiry. A text alone is nothing, so it is written first.
local function store(text, value, ...)
  if plain then
    text = text .. '\n' .. value
  end
  redis.call('SET', KEYS[2], text, ...)
  if plain then
    redis.call('SET', KEYS[1], value, ...)
  end
  return text
end

-- draw returns a number, as text, that is larger than every one drawn before: by
-- the counter, and if that was lost, by the server's clock in microseconds. It
-- stays below 2^53, up to which a Lua number counts exactly, until the year 2255.
-- A counter that is damaged is left as it is; its description is the second
-- result. The third is the number before this one: the revision of what the safe
-- held last. The counter is written before anything else, so that an error here
-- leaves nothing done.
local function draw()
  local last, kind = 0, redis.call('TYPE', KEYS[3]).ok
  if kind == 'string' then
    last = tonumber(string.match(redis.call('GET', KEYS[3]), '^%d+$'))
  elseif kind ~= 'none' then
    last = nil
  end
  if not last or last >= 9007199254740991 then
    return nil, 'BADCOUNTER no number below 2^53 is at ' .. KEYS[3] .. ': remove it, and tokens go on from the clock'
  end
  local now = redis.call('TIME')
  local n = string.format('%.0f', math.max(last + 1, now[1] * 1000000 + now[2]))
  redis.call('SET', KEYS[3], n)
  return n, nil, string.format('%.0f', last)
end

-- numbered adds token and revision to a text that has none. They are written as
-- text since cjson would round them.
local function numbered(text, token, revision)
  return string.sub(text, 1, -2) .. ',"token":' .. token .. ',"revision":' .. revision .. '}'
end

-- identity returns what tells the server from itself after a restart or a
-- promotion: that of the process and of the data set. A promotion changes the
-- latter.
local function identity()
  local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
  return string.match(info, 'run_id:(%x+)') .. string.match(info, 'master_replid:(%x+)')
end

-- settled reports whether the server has been known at KEYS[n] for so many
-- milliseconds, or need not be: one that was restarted or promoted since may have
-- forgotten a record whose owner still trusts it. What is at the key is the
-- server's identity, and since when it is known, in microseconds.
local function settled(n, ms)
  if tonumber(ms) == 0 then
    return true
  end
  local id = identity()
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

-- hint tells the watches to look, and what they will see: the text of a record, or
-- none if the safe is vacant, after the revision that has gone before. A watch that
-- knows that one shows this one before it looks. It may fail (an ACL forbids the
-- channel): they look anyway, only later, and the write has happened.
local function hint(channel, before, text)
  redis.pcall('PUBLISH', channel, before and before .. ' ' .. (text or '') or '')
end
