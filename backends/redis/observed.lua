
-- What follows is for records whose expiry their observers judge. A record has no
-- expiry here, so that the server's clock ends none, and KEYS[2] is KEYS[1]. Each
-- write brings a revision of its own, which its sender has drawn at random, so that
-- no revision comes twice, whatever the server forgets.

-- revised reports whether a text has this revision. It is compared as text: Lua's
-- numbers count to 2^53 only. In a JSON text, nothing but a field's name reads so.
local function revised(text, revision)
  return string.match(text, '"revision"%s*:%s*(%d+)') == revision
end

-- held is owned, at this revision.
local function held(signature, token, revision)
  local rec, text = owned(signature, token)
  if rec and not revised(text, revision) then
    return nil, false
  end
  return rec, text
end

-- repeated returns the text that a write under this signature with this revision
-- has left, or nil: its request came before, and this is a copy of it.
local function repeated(signature, revision)
  local kind, text = found('GET')
  local rec = kind == 'record' and decoded(text)
  if rec and rec.signature == signature and revised(text, revision) then
    return text
  end
end

-- stranger returns the identity of a server that may have forgotten a record, or a
-- refresh of one, whose owner still trusts it: unless somebody has said that it has
-- waited for as long as a quarantine lasts, by a clock of its own, since it first
-- saw that identity; that is written down at KEYS[n]. It returns '' for any other,
-- and if there is no quarantine.
local function stranger(n, waited)
  if not KEYS[n] then
    return ''
  end
  local id = identity()
  -- A store whose server judges expiry reads it as: known from the year 1970 on.
  local mark = id .. ' 0'
  if redis.call('TYPE', KEYS[n]).ok == 'string' and redis.call('GET', KEYS[n]) == mark then
    return ''
  end
  if waited == id then
    redis.call('SET', KEYS[n], mark)
    return ''
  end
  return id
end
