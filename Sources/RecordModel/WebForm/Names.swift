/// The rules for names that clients choose.
enum Names {
    /// 1 to 255 printable ASCII characters.
    static func checkPrintable(_ name: String) throws(FormError) {
        guard !name.isEmpty else { throw FormError("is empty; a name has 1 to \(Limits.nameLengthMax) characters") }
        let count = name.utf8.count
        guard count <= Limits.nameLengthMax else {
            throw FormError("has \(count) bytes; a name has 1 to \(Limits.nameLengthMax) characters")
        }
        guard name.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else {
            throw FormError("has characters other than printable ASCII")
        }
    }

    /// A record name; only the records of users begin with an underscore, so no other is made under such a name.
    static func checkRecord(_ name: String, mayCreate: Bool) throws(FormError) {
        try checkPrintable(name)
        if mayCreate, name.hasPrefix("_") {
            throw FormError("'\(name)' begins with an underscore, which only names of users' own records do")
        }
    }

    /// A zone name: no underscore at the start, but for the default zone's.
    static func checkZone(_ name: String) throws(FormError) {
        try checkPrintable(name)
        if name.hasPrefix("_"), name != ZoneKey.defaultZoneName {
            throw FormError("'\(name)' begins with an underscore, which only '\(ZoneKey.defaultZoneName)' does")
        }
    }

    /// A record type or field: a letter, then letters, digits and underscores.
    static func checkIdentifier(_ name: String) throws(FormError) {
        try checkPrintable(name)
        guard name.isIdentifier else {
            throw FormError("'\(name)' is no name here: a letter, then letters, digits and underscores")
        }
    }

    /// A record type; those of shares hold a dot.
    static func checkType(_ name: String) throws(FormError) {
        if name.lowercased().hasPrefix("cloudkit.share") { return try checkPrintable(name) }
        try checkIdentifier(name)
    }
}

extension ZoneID {
    /// Reads `{zoneName, ownerRecordName}`; whatever else clients echo, such as `zoneType`, is ignored.
    init(form json: JSONValue) throws(FormError) {
        let form = try Form(json)
        let name = try form.string("zoneName") ?? ZoneKey.defaultZoneName
        try at("zoneName") { () throws(FormError) in try Names.checkZone(name) }
        var owner = try form.string("ownerRecordName")
        if let given = owner { try at("ownerRecordName") { () throws(FormError) in try Names.checkPrintable(given) } }
        // The SDKs' word for the caller.
        if owner == "__defaultOwner__" { owner = nil }
        self.init(name: name, owner: owner)
    }
}

extension Form {
    /// `zoneID`, by default the default zone.
    func zoneID() throws(FormError) -> ZoneID {
        try nested("zoneID") { json throws(FormError) in try ZoneID(form: json) } ?? ZoneID()
    }

    /// `desiredKeys`: nil is every field, empty is none.
    func desiredKeys() throws(FormError) -> [String]? {
        guard let given = self["desiredKeys"] else { return nil }
        if let count = given.array?.count, count > Limits.desiredKeysMax {
            throw FormError("\(count) given, at most \(Limits.desiredKeysMax)", at: "desiredKeys")
        }
        return try array("desiredKeys") { json throws(FormError) in
            guard case .string(let key) = json else { throw .expected("a string", json) }
            return key
        }
    }

    /// `numbersAsStrings`, which one page of the reference spells `numberAsStrings`.
    func numbersAsStrings() throws(FormError) -> Bool? {
        if let flag = try bool("numbersAsStrings") { return flag }
        return try bool("numberAsStrings")
    }

    /// `resultsLimit`: by default and at most `Limits.recordsPerPageMax`; more is capped, less than 1 is refused.
    func resultsLimit() throws(FormError) -> Int? {
        guard let limit = try integer("resultsLimit") else { return nil }
        guard limit >= 1 else {
            throw FormError("expected 1 to \(Limits.recordsPerPageMax), found \(limit)", at: "resultsLimit")
        }
        return min(limit, Limits.recordsPerPageMax)
    }

    /// An opaque text from the server; empty counts as missing.
    func token(_ key: String) throws(FormError) -> String? {
        guard let text = try string(key), !text.isEmpty else { return nil }
        return text
    }

    /// `desiredRecordTypes`: nil is every type, empty is none.
    func desiredRecordTypes() throws(FormError) -> [String]? {
        guard let given = self["desiredRecordTypes"] else { return nil }
        if let count = given.array?.count, count > Limits.typesMax {
            throw FormError("\(count) given, at most \(Limits.typesMax)", at: "desiredRecordTypes")
        }
        return try array("desiredRecordTypes") { json throws(FormError) in
            guard case .string(let type) = json else { throw .expected("a string", json) }
            try Names.checkType(type)
            return type
        }
    }
}
