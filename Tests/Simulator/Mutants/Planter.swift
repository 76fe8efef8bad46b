import Foundation

/// Plants mutants into sources, each behind a condition of its own, so that one build holds them all. Which one is in
/// force the environment says.
///
/// `PLANTED` becomes a condition that notes where the fault would make a difference: `PLANTED || sound` where `sound`
/// is false, `!PLANTED && sound` where it is true, `PLANTED(faulty, sound)` where the two differ; anywhere else when it
/// is asked. So it is asked last.
struct Planter {
    /// The number of the mutant in force; 0 for none. Where it is 0, the process says of each fault when it would make
    /// a difference for the first time, the second, fourth, eighth and so on; where it is unset it says nothing.
    static let variable = "ZONEKEEPER_PLANTED_BUG"
    /// How such a line begins; the number follows.
    static let reached = "reached "

    /// The planted files, by their paths below `Sources`.
    private(set) var files: [String: String] = [:]

    /// - Parameter read: gives the text of a file below `Sources`.
    init(_ mutants: [Mutant] = Mutant.all, reading read: (String) throws -> String) throws {
        for (place, mutant) in mutants.enumerated() {
            for edit in mutant.edits {
                let text = try files[edit.file] ?? read(edit.file)
                let parts = text.components(separatedBy: edit.original)
                guard parts.count == 2 else {
                    throw Misplaced(number: place + 1, name: mutant.name, edit: edit, count: parts.count - 1)
                }
                var planted = edit.replacement
                for (text, code) in Self.forms {
                    let numbered = code.replacingOccurrences(of: "#", with: "\(place + 1)")
                    planted = planted.replacingOccurrences(of: text, with: numbered)
                }
                files[edit.file] = parts.joined(separator: planted)
            }
        }
    }

    /// What becomes of `PLANTED`, # being the fault's number; a form that is part of another comes later.
    private static let forms = [
        ("!PLANTED || ", "!planted(#) || "), ("!PLANTED && ", "!PlantedFault(#) && "),
        ("PLANTED || ", "PlantedFault(#) || "),
        ("PLANTED(", "planted(#, "), ("PLANTED", "planted(#)"),
    ]

    /// Writes the planted files, and what they ask, into a copy of the package.
    /// - Returns: the targets that have faults.
    func write(to package: String) throws -> [String] {
        for (file, text) in files {
            try text.write(toFile: "\(package)/Sources/\(file)", atomically: true, encoding: .utf8)
        }
        let targets = Set(files.keys.map { $0.prefix { $0 != "/" } }).sorted()
        for target in targets {
            try Self.condition.write(
                toFile: "\(package)/Sources/\(target)/Planted.swift", atomically: true, encoding: .utf8)
        }
        return targets.map { String($0) }
    }

    /// The sources changed, and a fault with them.
    struct Misplaced: Error, CustomStringConvertible {
        var number: Int
        var name: String
        var edit: Mutant.Edit
        /// How often the original is there.
        var count: Int

        var description: String {
            """
            fault \(number), \(name): \(edit.file) has this \(count) times, not once:
            \(edit.original)
            Mend Tests/Simulator/Mutants.
            """
        }
    }

    private static let condition = """
        import Foundation

        private let faultInForce = ProcessInfo.processInfo.environment["\(variable)"].flatMap { Int($0) }
        // Simulations run on one thread.
        private nonisolated(unsafe) var counts = [UInt64](repeating: 0, count: 1_000)

        private func note(_ fault: Int) {
            guard faultInForce == 0 else { return }
            counts[fault] += 1
            guard counts[fault].nonzeroBitCount == 1 else { return }
            FileHandle.standardOutput.write(Data("\(Self.reached)\\(fault)\\n".utf8))
        }

        /// Whether a fault is the one in force.
        func planted(_ fault: Int) -> Bool {
            note(fault)
            return fault == faultInForce
        }

        /// What a fault makes of a value that is free of side effects.
        func planted<Value: Equatable>(
            _ fault: Int, _ faulty: @autoclosure () throws -> Value, _ sound: @autoclosure () throws -> Value
        ) rethrows -> Value {
            if fault == faultInForce { return try faulty() }
            let value = try sound()
            if faultInForce == 0, try faulty() != value { note(fault) }
            return value
        }

        struct PlantedFault {
            var number: Int
            init(_ number: Int) { self.number = number }

            static func || (fault: Self, sound: @autoclosure () throws -> Bool) rethrows -> Bool {
                if fault.number == faultInForce { return true }
                if try sound() { return true }
                note(fault.number)
                return false
            }

            static prefix func ! (fault: Self) -> Absence { Absence(number: fault.number) }

            struct Absence {
                var number: Int

                static func && (absence: Self, sound: @autoclosure () throws -> Bool) rethrows -> Bool {
                    if absence.number == faultInForce { return false }
                    guard try sound() else { return false }
                    note(absence.number)
                    return true
                }
            }
        }

        """
}
