/// The body of tokens/create and tokens/register.
package struct DeviceTokenRequest: WebRequest, Hashable {
    /// `development` or `production`, unchecked.
    package var environment: String
    /// For register, the token of an earlier create.
    package var token: String?
    /// The device, as it names itself.
    package var clientID: String?

    /// Reads the body.
    package init(json: JSONValue) throws(ServiceError) {
        (environment, token, clientID) = try service { () throws(FormError) in
            let form = try Form(json)
            guard let environment = try form.string("apnsEnvironment") else {
                throw FormError("'development' or 'production' is expected", at: "apnsEnvironment")
            }
            let client = try form.token("clientId")
            if let client { try at("clientId") { () throws(FormError) in try Names.checkPrintable(client) } }
            return (environment, try form.token("apnsToken"), client)
        }
    }
}
