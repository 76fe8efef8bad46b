package import Wire

extension Query: WireCodable {
    /// 1 record type, 2 filters, 3 sorts.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, recordType)
        for filter in filters { writer.field(2) { filter.encode(to: &$0) } }
        for sort in sorts { writer.field(3) { sort.encode(to: &$0) } }
    }

    /// - Throws: `WireError` if a part is missing or unknown; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var recordType: String?
        var filters: [Filter] = []
        var sorts: [Sort] = []
        while let field = try reader.nextField() {
            switch field {
            case 1: recordType = try reader.string()
            case 2: filters.append(try reader.message())
            case 3: sorts.append(try reader.message())
            default: try reader.skip()
            }
        }
        self.init(recordType: try required(recordType, 1), filters: filters, sorts: sorts)
    }
}

extension Filter: WireCodable {
    /// 1 field (left out for every searchable one), 2 comparator (CloudKit's name), 3 value, 4 distance.
    package func encode(to writer: inout WireWriter) {
        if let field { writer.field(1, field) }
        writer.field(2, comparator.rawValue)
        writer.field(3) { value.encode(to: &$0) }
        if let distance { writer.field(4, double: distance) }
    }

    /// - Throws: `WireError` if a part is missing or the comparator unknown; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var name: String?
        var comparator: Comparator?
        var value: FieldValue?
        var distance: Double?
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2:
                guard let known = Comparator(rawValue: try reader.string()) else { throw .invalidValue(field: 2) }
                comparator = known
            case 3: value = try reader.message()
            case 4: distance = try reader.double()
            default: try reader.skip()
            }
        }
        self.init(
            field: name, comparator: try required(comparator, 2), value: try required(value, 3), distance: distance)
    }
}

extension Sort: WireCodable {
    /// 1 field, 2 whether descending (left out when ascending), 3 the place that distances are from.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, field)
        if !isAscending { writer.field(2, true) }
        if let relativeLocation { writer.field(3) { relativeLocation.encode(to: &$0) } }
    }

    /// - Throws: `WireError` if the field is missing; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var name: String?
        var isDescending = false
        var relativeLocation: Location?
        while let field = try reader.nextField() {
            switch field {
            case 1: name = try reader.string()
            case 2: isDescending = try reader.bool()
            case 3: relativeLocation = try reader.message()
            default: try reader.skip()
            }
        }
        self.init(field: try required(name, 1), isAscending: !isDescending, relativeLocation: relativeLocation)
    }
}

extension ServiceError: WireCodable {
    /// 1 code (CloudKit's name), 2 reason, 3 seconds until a retry may help.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, code.rawValue)
        writer.field(2, reason)
        if let retryAfterSeconds { writer.field(3, double: retryAfterSeconds) }
    }

    /// - Throws: `WireError` if a part is missing or the code unknown; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var code: ErrorCode?
        var reason: String?
        var retryAfterSeconds: Double?
        while let field = try reader.nextField() {
            switch field {
            case 1:
                guard let known = ErrorCode(rawValue: try reader.string()) else { throw .invalidValue(field: 1) }
                code = known
            case 2: reason = try reader.string()
            case 3: retryAfterSeconds = try reader.double()
            default: try reader.skip()
            }
        }
        self.init(try required(code, 1), try required(reason, 2), retryAfterSeconds: retryAfterSeconds)
    }
}
