package import Wire

extension Query: WireMessage {
    package static var blank: Self { Query(recordType: "", filters: [], sorts: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &recordType)
        try wire.field(2, &filters)
        try wire.field(3, &sorts)
    }
}

extension Filter: WireMessage {
    package static var blank: Self { Filter(field: nil, comparator: .equals, value: .int64(0), distance: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &field)
        try wire.required(2, &comparator)
        try wire.required(3, &value)
        try wire.field(4, &distance)
    }
}

extension Sort: WireMessage {
    package static var blank: Self { Sort(field: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &field)
        try wire.field(2, &isDescending, unless: false)
        try wire.field(3, &relativeLocation)
    }

    private var isDescending: Bool {
        get { !isAscending }
        set { isAscending = !newValue }
    }
}

extension ServiceError: WireMessage {
    package static var blank: Self { ServiceError(.internalError, "", retryAfterSeconds: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &code)
        try wire.required(2, &reason)
        try wire.field(3, &retryAfterSeconds)
        var name = detail?.rawValue
        try wire.field(4, &name)
        detail = name.flatMap(ErrorDetail.init)
    }
}
