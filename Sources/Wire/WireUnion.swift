/// A message of one field, whose number says which case of an enumeration it is.
///
/// Writing is a switch over the cases, so that the compiler finds one without a number.
package protocol WireUnion: WireDecodable, WireEncodable, WireValue {
    /// Reads the current field; nil, with nothing read, where no case has its number.
    init?(_ number: Int, from reader: inout WireReader) throws(WireError)
}

extension WireUnion {
    /// The last field that this build knows counts.
    package init(from reader: inout WireReader) throws(WireError) {
        var value: Self?
        while let number = try reader.nextField() {
            if let known = try Self(number, from: &reader) { value = known } else { try reader.skip() }
        }
        guard let value else { throw .missingField(1) }
        self = value
    }
}

extension WireWriter {
    /// A nested message with the values of a case, numbered from 1.
    package mutating func parts<each Part: WireValue>(_ number: Int, _ part: repeat each Part) {
        let start = open(number)
        var place = 0
        for part in repeat each part {
            place += 1
            part.write(place, to: &self)
        }
        close(start)
    }
}

extension WireReader {
    /// What it means that the current field is there; its value says nothing.
    package mutating func flag<Value>(_ value: Value) throws(WireError) -> Value {
        guard try bool() else { throw .invalidValue(field: number) }
        return value
    }

    /// What `make` makes of the parts of the current field, which `WireWriter.parts` wrote.
    package mutating func parts<each Part: WireValue, Whole>(
        _ make: (repeat each Part) -> Whole
    ) throws(WireError) -> Whole {
        let nested = try nested()
        var count = 0
        for _ in repeat (each Part).self { count += 1 }
        try nested.requireNumbers(upTo: count)
        var place = 0
        return make(repeat try nested.part(&place, (each Part).self))
    }

    private func requireNumbers(upTo count: Int) throws(WireError) {
        var reader = self
        while let number = try reader.nextField() {
            if (1...count).contains(number) { try reader.pass() } else { try reader.skip() }
        }
    }

    private func part<Part: WireValue>(_ place: inout Int, _: Part.Type) throws(WireError) -> Part {
        place += 1
        var reader = self
        var part = Part.absent
        while let number = try reader.nextField() {
            if number != place {
                try reader.pass()
            } else if part == nil {
                part = try Part(field: &reader)
            } else {
                try part?.read(&reader)
            }
        }
        guard let part else { throw .missingField(place) }
        return part
    }
}
