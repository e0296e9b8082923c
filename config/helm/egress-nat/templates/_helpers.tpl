{{- /* The names of the objects are fixed: a cluster has one egress-nat, as a node has one CNI plugin of that name. */ -}}

{{- define "egress-nat.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: egress-nat
{{ include "egress-nat.selector" . }}
{{- end }}

{{- define "egress-nat.selector" -}}
app.kubernetes.io/name: egress-nat
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* Of the pods of a program (root, component, its values). The schema of the values refuses labels of our own keys. */ -}}
{{- define "egress-nat.podMetadata" -}}
metadata:
  labels:
    {{- include "egress-nat.labels" . | nindent 4 }}
    {{- with .values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* Of a program (root, name: its key in the values of image). */ -}}
{{- define "egress-nat.image" -}}
{{- $image := index .root.Values.image .name -}}
{{- $version := printf ":%s" (.root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- with $image.digest }}{{ $version = printf "@%s" . }}{{ end -}}
{{- printf "%s/%s%s" .root.Values.image.registry $image.repository $version -}}
{{- end }}

{{- define "egress-nat.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Of the operator: no agent takes the startup taint off a node before it serves. */ -}}
{{- define "egress-nat.tolerations" -}}
{{- $startup := list -}}
{{- with .Values.nodeAgent.startupTaint }}{{ $startup = list (dict "key" . "operator" "Exists") }}{{ end -}}
{{- toYaml (concat (.Values.operator.tolerations | default list) $startup | default list) -}}
{{- end }}

{{- /* For containers that need nothing but a CPU and the network. */ -}}
{{- define "egress-nat.unprivileged" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- /* What every program of the product is told about itself. */ -}}
{{- define "egress-nat.environment" -}}
- name: POD_NAMESPACE
  valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
- name: POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: LOG_LEVEL
  value: {{ .Values.logLevel }}
{{- end }}

{{- /* A hook of (event, weight): gone when it has succeeded; a failed one is kept to be looked at until the next try. */ -}}
{{- define "egress-nat.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{- /*
For admission policies that refuse: whether a request comes from a ServiceAccount (account), as a condition of a name
(condition). Tools that move the objects to another namespace do not rewrite expressions, and a policy that matches
nobody refuses nothing: so this names no namespace. An account of that name in another one is held to the same, which
gives it no right.
*/ -}}
{{- define "egress-nat.isAccount" -}}
- name: {{ .condition }}
  expression: >-
    request.userInfo.username.startsWith('system:serviceaccount:')
    && request.userInfo.username.endsWith(':{{ .account }}')
{{- end }}

{{- define "egress-nat.isNodeAgent" -}}
{{- include "egress-nat.isAccount" (dict "condition" "is-a-node-agent" "account" "egress-nat-node-agent") }}
{{- end }}

{{- /* The node that the token of a request names. */ -}}
{{- define "egress-nat.tokenNode" -}}
- name: tokenNode
  expression: >-
    has(request.userInfo.extra) && 'authentication.kubernetes.io/node-name' in request.userInfo.extra
    ? request.userInfo.extra['authentication.kubernetes.io/node-name'][0] : ''
{{- end }}
