// Command oldest-apiserver says what the API server of one Kubernetes version, that of its modules, refuses of
// CustomResourceDefinitions and ValidatingAdmissionPolicies: a JSON array of them on stdin, an objection a line on
// stdout. It is that server's own validation, which takes a minute to compile; the server takes eight.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

func main() {
	var objects []json.RawMessage
	must(json.NewDecoder(os.Stdin).Decode(&objects))
	status := 0
	for _, object := range objects {
		var head metav1.PartialObjectMetadata
		must(json.Unmarshal(object, &head))
		for _, objection := range objections(head.Kind, object) {
			fmt.Printf("%s %s: %s\n", head.Kind, head.Name, objection)
			status = 1
		}
	}
	os.Exit(status)
}

func objections(kind string, object json.RawMessage) []string {
	switch kind {
	case "CustomResourceDefinition":
		return toDefinition(object)
	case "ValidatingAdmissionPolicy":
		return toPolicy(object)
	default:
		return []string{"neither a CustomResourceDefinition nor a ValidatingAdmissionPolicy"}
	}
}

func toDefinition(object json.RawMessage) (objections []string) {
	var versioned apiextensionsv1.CustomResourceDefinition
	must(json.Unmarshal(object, &versioned))
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&versioned)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&versioned.Spec)
	var definition apiextensions.CustomResourceDefinition
	must(apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		&versioned, &definition, nil))
	// The server's strategy notes it when it creates one.
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			definition.Status.StoredVersions = []string{version.Name}
		}
	}
	for _, objection := range validation.ValidateCustomResourceDefinition(context.Background(), &definition) {
		objections = append(objections, objection.Error())
	}
	return objections
}

// toPolicy compiles what validateValidatingAdmissionPolicySpec of k8s.io/kubernetes compiles, in the same environments.
func toPolicy(object json.RawMessage) (objections []string) {
	var policy admission.ValidatingAdmissionPolicy
	must(json.Unmarshal(object, &policy))
	const strictCost = true
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion(), strictCost)
	declared := plugincel.OptionalVariableDeclarations{HasAuthorizer: true, StrictCost: strictCost}
	complain := func(where string, result plugincel.CompilationResult) {
		if result.Error != nil {
			objections = append(objections, fmt.Sprintf("%s: %s", where, result.Error))
		}
	}
	for _, condition := range policy.Spec.MatchConditions {
		complain("matchCondition "+condition.Name, plugincel.NewCompiler(base).CompileCELExpression(
			expression{text: condition.Expression, types: []*cel.Type{cel.BoolType}}, declared, environment.NewExpressions))
	}
	compiler, err := plugincel.NewCompositedCompiler(base)
	must(err)
	for _, variable := range policy.Spec.Variables {
		complain("variable "+variable.Name, compiler.CompileAndStoreVariable(
			expression{name: variable.Name, text: variable.Expression, types: []*cel.Type{cel.AnyType, cel.DynType}},
			declared, environment.NewExpressions))
	}
	withoutAuthorizer := plugincel.OptionalVariableDeclarations{StrictCost: strictCost}
	for index, validation := range policy.Spec.Validations {
		complain(fmt.Sprintf("validations[%d].expression", index), compiler.CompileCELExpression(
			expression{text: validation.Expression, types: []*cel.Type{cel.BoolType}}, declared, environment.NewExpressions))
		if validation.MessageExpression != "" {
			complain(fmt.Sprintf("validations[%d].messageExpression", index), compiler.CompileCELExpression(
				expression{text: validation.MessageExpression, types: []*cel.Type{cel.StringType}},
				withoutAuthorizer, environment.NewExpressions))
		}
	}
	return objections
}

// expression is one of a policy, as the compiler asks for it.
type expression struct {
	name  string
	text  string
	types []*cel.Type
}

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return e.types }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
